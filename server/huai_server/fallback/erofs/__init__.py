"""Attr trees as EROFS images: one file for each module, which the kernel reads and can page out.

The image holds names and attributes; a file that is not empty is one hole of its true size.
It needs only huai and the kernel: no mkfs, no mount program, no copy of the tree.

Rule: content of a mounted image reads as zeros, so serve it only with the preload library.
"""
