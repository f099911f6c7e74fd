"""The trash: what a sync deleted or replaced stays for a while, on the same file system.

Each run that takes something away makes a batch below DEST/.~tmp~/huai-trash, with the paths of the
tree.  `trash` names, keeps and throws away, `restore` finds the content of a plan.
"""
