"""The trash: deleted and replaced files are kept for a while, on the same file system.

A run that deletes or replaces files makes a batch, a folder below DEST/.~tmp~/huai-trash with the
paths of the tree.  `trash` names, fills and purges batches; `restore` finds the content of a plan
in them.
"""
