// Command wasmtool does in a module what its arguments say, for the tests.
package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
)

func main() {
	var err error
	switch os.Args[1] {
	case "read":
		var b []byte
		b, err = os.ReadFile(os.Args[2])
		fmt.Print(string(b))
	case "write":
		err = os.WriteFile(os.Args[2], []byte("from a module"), 0o644)
	case "link":
		err = os.Symlink("/etc/passwd", os.Args[2])
	case "env":
		fmt.Println(os.Getenv(os.Args[2]))
	case "dial":
		_, err = net.Dial("tcp", os.Args[2])
	case "exec":
		err = exec.Command("/bin/true").Run()
	case "spin":
		for {
		}
	case "rename":
		err = os.Rename(os.Args[2], os.Args[3])
	case "exit":
		os.Exit(9)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
