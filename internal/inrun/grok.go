package inrun

// GrokArgs make Grok talk on this channel. Its settings must make it ask about
// what it would run by itself.
func GrokArgs(model string) []string {
	args := []string{"agent", "--no-leader"}
	if model != "" {
		args = append(args, "-m", model)
	}
	return append(args, "stdio")
}
