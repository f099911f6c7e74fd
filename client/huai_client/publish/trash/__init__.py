"""The trash: what a sync deleted or replaced stays for a while, on the same file system.

`ground` is a tree with a trash, `keeping` puts things there, `bin` throws them away, `restoring`
plans with what is there.  Each run that takes something away makes a batch below
DEST/.~tmp~/huai-trash, with the paths of the tree.
"""
