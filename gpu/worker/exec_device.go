package worker

import "github.com/basalt-gpu/basalt/gpu/abi"

func (s *Session) deviceInfo(c *command) error {
	a := abi.DecodeDeviceInfo(c.argBytes)
	if a.Device != 0 {
		return abi.ErrInvalidDevice
	}
	out, _, err := s.buffer(a.OutRegion, a.OutOff, a.OutLen)
	if err != nil {
		return err
	}
	info, limits := s.driver.Info(), s.host.Limits()
	info.TotalMemory, info.UUID, info.Devices = limits.VRAM, limits.UUID, 1
	if limits.Name != "" {
		info.Name = limits.Name
	}
	return c.write(out, info.Append(nil))
}

// multiprocessors returns the multiprocessors of a device that supports green
// contexts.
func (s *Session) multiprocessors(c *command) error {
	a := abi.DecodeMultiprocessors(c.argBytes)
	if a.Device != 0 {
		return abi.ErrInvalidDevice
	}
	if a.Zero != 0 {
		return abi.ErrInvalidValue
	}
	d, ok := s.driver.(Partitioner)
	if !ok {
		return abi.ErrNotSupported
	}
	c.value0 = uint64(d.Multiprocessors())
	return nil
}

func (s *Session) vgpuStatus(c *command) error {
	a := abi.DecodeVGPUStatus(c.argBytes)
	if a.Device != 0 {
		return abi.ErrInvalidDevice
	}
	out, r, err := s.buffer(a.OutRegion, a.OutOff, a.OutLen)
	if err != nil {
		return err
	}
	if r != nil {
		r.acquire()
	}
	var status abi.VGPUStatusReply
	asked := s.ask(c, func() (err error) {
		status, err = s.host.Status()
		return err
	}, func(c *command, err error) error {
		if r != nil {
			defer r.release()
		}
		if err != nil {
			return err
		}
		return c.write(out, status.Append(nil))
	})
	if asked != errLater && r != nil { //nolint:errorlint // ask returns it bare
		r.release()
	}
	return asked
}
