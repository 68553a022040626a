//go:build !unix

package forward

// Main blocks: without unix sockets there is no gate to ask.
func Main([]string) int {
	println("gatehouse: blocked: hooks need a system with unix sockets")
	return 2
}
