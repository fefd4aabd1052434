package worker

import "github.com/basalt-gpu/basalt/gpu/abi"

// imageInfo has the driver read an image in another goroutine.
func (s *Session) imageInfo(c *command) error {
	a := abi.DecodeImageInfo(c.argBytes)
	if a.ImageLen > abi.MaxModuleImage {
		return abi.ErrInvalidImage
	}
	image, in, err := s.buffer(a.ImageRegion, a.ImageOff, a.ImageLen)
	if err != nil {
		return err
	}
	out, record, err := s.buffer(a.OutRegion, a.OutOff, a.OutLen)
	if err != nil {
		return err
	}
	held := hold(in, record)
	var info abi.ModuleInfo
	asked := s.ask(c, func() (err error) {
		info, err = s.readImage(image)
		return err
	}, func(c *command, err error) error {
		defer held.release()
		if err != nil {
			return err
		}
		return c.write(out, info.Append(nil))
	})
	if asked != errLater { //nolint:errorlint // ask returns it bare
		held.release()
	}
	return asked
}

// readImage runs in another goroutine than the issuer. Its memory counts like
// that of a load.
func (s *Session) readImage(shared []byte) (info abi.ModuleInfo, err error) {
	err = s.withImage(shared, func(image []byte) (err error) {
		info, err = s.driver.ImageInfo(image)
		return err
	})
	return info, err
}

// withImage calls use with a copy of an image, which the guest can no longer
// change, once there is room for it.
func (s *Session) withImage(shared []byte, use func(image []byte) error) error {
	size := uint64(len(shared))
	if err := s.loads.enter(s.gate.ctx, size); err != nil {
		return err
	}
	defer s.loads.leave(size)
	var image []byte
	s.guard(func() { image = append(make([]byte, 0, size), shared...) })
	if image == nil {
		return abi.ErrUnavailable
	}
	return use(image)
}
