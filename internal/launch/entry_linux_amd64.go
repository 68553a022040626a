package launch

import "unsafe"

// Entry is the symbol to link the second stage with
//
//	go build -ldflags '-E=github.com/seed-3ebc6b8a/gatehouse/internal/launch.entry' ./cmd/gatehouse-launch
//
// so that it starts without the Go runtime: no threads, no heap, no signal
// handlers, a third of the time. Linked without, it does the same with them.
const Entry = "github.com/seed-3ebc6b8a/gatehouse/internal/launch.entry"

func entry()

var (
	// storage is the thread-local storage: one word, where the compiler looks
	// for the current goroutine.
	storage [8]uintptr
	// routine stands for one. All its words are zero, the stack bound too, so
	// that no function ever finds its stack too small and asks the runtime.
	routine [64]uintptr
)

// enter takes over from the assembly. sp is the stack as the kernel left it:
// the number of arguments, then their addresses, then nil.
func enter(sp *uintptr) {
	argv := unsafe.Slice((**byte)(unsafe.Add(unsafe.Pointer(sp), 8)), int(*sp)+1)
	if len(argv) == 5 && equal(argv[1], Mark) || len(argv) > 7 && equal(argv[1], MarkOverlay) {
		begin(argv)
	}
	t := text{to: message[:]}
	t.add("gatehouse-launch is started by gatehouse, not by hand\n").write(2)
	exit(2)
}
