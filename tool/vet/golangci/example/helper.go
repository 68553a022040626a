package example

import (
	"os"

	"github.com/seed-3ebc6b8a/gatehouse/tool/vet/golangci/example/library"
)

func save(name string) error { return os.WriteFile(name, nil, 0o600) }

func render() (string, error) { return library.Render(), save("out/b") }
