"""Sphinx's configuration. The sources are in build/docs, where pages.py puts them; `make docs` builds the site."""

project = "MOSAIC"
html_title = "MOSAIC"
html_theme = "furo"  # bundles its own scripts and uses the system's fonts: a page makes no request elsewhere
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False

extensions = ["myst_parser"]
myst_heading_anchors = 4  # the anchors that GitHub makes, so that links work in both places
# Generated pages may skip a level of headings; fragments of programs have … in them.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
highlight_language = "text"
smartquotes = False  # they would turn --name into a dash, and the quotes of a value into others
