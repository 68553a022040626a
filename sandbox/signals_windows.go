package sandbox

import "os"

// passedOn are the signals that a command gets from whoever started it; a
// terminal sends none when its size changes.
var (
	passedOn = []os.Signal{os.Interrupt}
	resized  []os.Signal
)
