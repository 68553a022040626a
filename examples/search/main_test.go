package main

import (
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/tool"
	"github.com/seed-3ebc6b8a/gatehouse/tool/tooltest"
)

// TestPermissions holds the program against the manifest that was reviewed.
func TestPermissions(t *testing.T) {
	t.Parallel()
	a, err := tool.NewAgent(spec)
	if err != nil {
		t.Fatal(err)
	}
	tooltest.Manifest(t, a, "permissions.json")
}
