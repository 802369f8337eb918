"""The Spark session of this process, and the JVM that it runs in."""
