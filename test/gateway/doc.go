// Package gateway tests the MCP front through the real binary.
//
// The test program plays the upstream itself: started with "play-upstream" it is
// an MCP server over standard input and output whose tools are what a file says,
// so that a test can change them, and whose answers show which bytes arrived.
package gateway
