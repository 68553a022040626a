//go:build !unix

package main

import (
	"context"
	"os/exec"
)

// ownGroup leaves the default: the child itself is ended.
func ownGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}

func giveWay(*exec.Cmd) {}

func watchParent(context.Context, func()) {}
