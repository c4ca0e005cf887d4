"""Spreads the parts of a night-audit over an Apache Spark cluster.

Every rule is in the program night-audit; what is here carries frames from one stage to the next.
"""
