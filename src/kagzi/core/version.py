"""The version of this package; `kagzi.__version__` for users."""

__version__ = "0.1.0"
