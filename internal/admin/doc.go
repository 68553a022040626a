// Package admin is what people do at the gate: answer requests, revoke
// grants, throw the kill switch, enrol approvers and agents, accept policy
// changes.
//
// It is the counterpart of package gate: calls of agents go through gate,
// acts of people go through admin, and each act is one transaction that
// changes the state and appends its record. Every method takes the [Actor]
// who acts; there is none without. Reading is here too, because what a person
// is shown (every byte of a waiting call) no agent surface may see.
//
// The API's approver half and the console are its only users. It knows
// nothing about HTTP.
package admin
