"""Items that become flows of their own."""
