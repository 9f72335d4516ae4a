# dphmm with its kernels compiled, as a user who is not root:
#
#     docker build -t dphmm .
#     docker run --rm -v "$PWD:/data" --user "$(id -u):$(id -g)" dphmm release people.parquet ...
#
# Kernels serve processors like the one they were compiled on. On another one, name a folder that can be written:
# docker run -e DPHMM_KERNELS=/data/kernels ...

FROM python:3.13-slim AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl && rm -r /wheels
# Root alone may write there: what lies there is run.
ENV DPHMM_KERNELS=/opt/kernels
RUN dphmm warm --to /opt/kernels --quiet && chmod -R a+rX /opt/kernels
RUN useradd --create-home dphmm
USER dphmm
WORKDIR /data
ENTRYPOINT ["dphmm"]
CMD ["--help"]
