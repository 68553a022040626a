// Package library starts a program where nobody looks.
package library

import "os/exec"

// Render starts it.
func Render() string {
	text, _ := exec.Command("render").Output()
	return string(text)
}
