"""The pages for people: the modules, and the changes of each commit, in HTML.

Templates, style sheet, script and translations are files next to the modules.  Rule: a page shows
what other modules decide, loads nothing from elsewhere, and shows everything without its script.
"""
