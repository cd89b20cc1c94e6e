"""Long-term memory for AI agents: the public interface of the distribution."""
