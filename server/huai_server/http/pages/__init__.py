"""The pages for people: what is served, what each commit changed, in HTML.

Templates, the style sheet, the script and the words of other languages are files beside the
modules.  Rule: a page shows what others decide, loads nothing from elsewhere, and says all it has
to say without its script.
"""
