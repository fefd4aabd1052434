// Package forecast predicts when the GPUs of each model and pool are full. History is
// read from the usage records, since nothing else is kept for weeks; trend.go is pure.
//
//	usage by hour ─► highest level of each day ─► TrendOf ─┐
//	GPUs, pools, instances ─► allocated now, capacity ─────┴─► Trend.Until
package forecast
