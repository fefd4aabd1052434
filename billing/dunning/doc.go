// Package dunning decides the consequences of an unpaid balance and of an exhausted
// budget. It is pure.
package dunning
