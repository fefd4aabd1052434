//go:build !cgo

package gpud

import "github.com/basalt-gpu/basalt/gpu/sched"

// nvidia needs cgo to open NVML; without it a node has soft GPUs only.
type nvidia struct{}

func openNVIDIA() (*nvidia, error)           { return nil, nil }
func (*nvidia) close()                       {}
func (*nvidia) cards() ([]cardInfo, []error) { return nil, nil }
func (*nvidia) settings(int) error           { return nil }
func (*nvidia) sensors(sched.GPUID) sensors  { return sensors{} }
