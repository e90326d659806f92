"""The verbs that do not concern runs, written once for both stores."""
