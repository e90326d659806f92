"""The verbs about everything but runs, once for both stores."""
