// Command knownbad calls a function that the vulnerability database names. The
// scan of the real module means nothing unless the same scan finds this one.
package main

import (
	"fmt"
	"os"

	"golang.org/x/net/html"
)

func main() {
	node, err := html.Parse(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(node.Type)
}
