// Command lint is golangci-lint with the gatehouse plugin: what golangci-lint
// custom builds, from the modules alone.
package main

import (
	"fmt"
	"os"

	"github.com/golangci/golangci-lint/v2/pkg/commands"
	"github.com/golangci/golangci-lint/v2/pkg/exitcodes"

	_ "github.com/seed-3ebc6b8a/gatehouse/tool/vet/golangci"
)

func main() {
	if err := commands.Execute(commands.BuildInfo{Version: "2.14.0", GoVersion: "unknown", Commit: "gatehouse"}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitcodes.Failure)
	}
}
