"""What makes a class an estimator to scikit-learn, without needing scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from dphmm.errors import InvalidInput

E = TypeVar("E", bound="Estimator")


class Estimator:
    """Parameters are the arguments of ``__init__``, each kept as an attribute of its name."""

    #: Parameters that are only other names of others.
    _synonyms: frozenset[str] = frozenset()

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        arguments = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {argument.name: argument.default for argument in arguments}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as they were given."""
        return {name: getattr(self, name) for name in sorted(self._defaults())}

    def set_params(self: E, **params: Any) -> E:
        """Change parameters by name."""
        known = self._defaults()
        for name, value in params.items():
            if name not in known:
                raise InvalidInput("set_params", name, "one of " + ", ".join(sorted(known)))
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks an estimator; it is imported here only, where it must be there already."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type="density_estimator", target_tags=TargetTags(required=False))

    def __repr__(self) -> str:
        changed = [
            f"{name}={getattr(self, name)!r}"
            for name, default in self._defaults().items()
            if name not in self._synonyms and repr(getattr(self, name)) != repr(default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"
