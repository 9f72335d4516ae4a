"""How Sphinx builds the site: `python3 run.py docs` writes it to docs-out/, without any network.

The pages are the Markdown files of this folder, as they are. `site_pages.py` puts the files of the checkout's root
among them, and the public names of the package.
"""

from __future__ import annotations

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "dphmm"
copyright = "the authors of dphmm, Apache-2.0"
version = release = installed("dphmm")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "site_pages"]
source_suffix = {".md": "myst-nb"}
root_doc = "index"
nitpicky = True
#: "--option" in the help of a command stays as it is.
smartquotes = False
#: Annotations and docstrings speak of private names and of NumPy's too, which have no page here and are no links.
nitpick_ignore_regex = [("py:.*", ".*")]

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
#: A page may go from its title to small headings.
suppress_warnings = ["myst.header"]

# The notebooks are run in a folder that is removed; where a cell fails, so does the site.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 90
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries = False

html_theme = "furo"
html_title = f"dphmm {version}"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
