"""Generated from `proto/kagzi/v1` by `make gen`; never edited."""
