// Package report sums up use and revenue, and writes them as CSV. It is pure.
package report
