"""The version of this package: what `kagzi.__version__` says, the server reports and workers register with."""

__version__ = "0.1.0"
