package main

import "errors"

// ownerOf is the user whom a directory belongs to.
func ownerOf(string) (int, error) {
	return 0, errors.New("this system has no numbers for the owners of files")
}
