package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker/selftest"
)

// check opens a GPU and uses it as a guest's program would. It writes a line per step to
// stderr, which basalt-gpud doctor reads.
func check(o options) error {
	id, err := hex.DecodeString(strings.ReplaceAll(strings.TrimPrefix(o.check, "GPU-"), "-", ""))
	if err != nil || len(id) != 16 {
		return fmt.Errorf("--check %s: want the UUID of a GPU, as nvidia-smi -L prints it", o.check)
	}
	d := wire.Device{Driver: wire.DriverCUDA, UUID: [16]byte(id)}
	driver, err := openDriver(d, nil)
	printStep(selftest.Step{Name: "libcuda opens the card", Err: err})
	if err != nil {
		return errNotSound
	}
	sound := true
	selftest.Run(driver, func(s selftest.Step) {
		printStep(s)
		sound = sound && s.Err == nil
	})
	if !sound {
		return errNotSound
	}
	return driver.Close()
}

var errNotSound = errors.New("workers cannot use the GPU")

// printStep writes a step as "check: NAME: ok" or "check: NAME: ERROR".
func printStep(s selftest.Step) {
	result := "ok"
	if s.Err != nil {
		result = strings.ReplaceAll(s.Err.Error(), "\n", "; ")
	}
	fmt.Fprintf(os.Stderr, "check: %s: %s\n", s.Name, result)
}
