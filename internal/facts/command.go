package facts

// command describes a command line.
func (x *extractor) command(strs []String) {
	x.unknown("runs a command", true)
}
