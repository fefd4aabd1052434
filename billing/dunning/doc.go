// Package dunning decides what follows of a balance that is not paid and of a
// budget that is used. It is pure.
package dunning
