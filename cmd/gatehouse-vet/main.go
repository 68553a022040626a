// Gatehouse-vet holds the code of tools against what they declare:
//
//	go vet -vettool=$(which gatehouse-vet) ./...
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/seed-3ebc6b8a/gatehouse/tool/vet"
)

func main() { unitchecker.Main(vet.Declared, vet.Undeclared) }
