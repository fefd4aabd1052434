// Package report aggregates usage and revenue, and writes them as CSV. It is pure.
package report
