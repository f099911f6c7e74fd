"""The known kinds of repositories, and the stages of their files."""
