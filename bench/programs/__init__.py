"""Load generators and workers, one pair for each engine. They run in the environment of the engine, not in Kagzi's."""
