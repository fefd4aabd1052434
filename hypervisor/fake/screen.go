package fake

import (
	"encoding/binary"
	"errors"
	"io"
)

// A screen is a small VNC server (RFC 6143): no password, raw pixels, a
// picture of colored bars. Each pressed key makes the bar at the bottom
// longer.
const (
	screenWidth, screenHeight = 320, 200 // pixels
	barHeight                 = 20       // of the bar at the bottom
	barStep                   = 16       // pixels per key

	maxCutText = 64 << 10
)

// bars are the colors of the picture from left to right, as red, green and
// blue.
var bars = [][3]byte{{255, 255, 255}, {255, 255, 0}, {0, 255, 255}, {0, 255, 0}, {255, 0, 255}, {255, 0, 0}, {0, 0, 255}, {32, 32, 32}}

// Messages from the client, RFC 6143 section 7.5.
const (
	setPixelFormat, setEncodings, updateRequest, keyEvent, pointerEvent, cutText = 0, 2, 3, 4, 5, 6
)

// pixels is the pixel format of the client, RFC 6143 section 7.4; only 32 bits
// per pixel are supported.
type pixels struct{ red, green, blue byte } // shifts

type screen struct {
	conn    io.ReadWriter
	format  pixels
	keys    int  // pressed
	shown   int  // value of keys in the last picture sent
	waiting bool // the client has requested an update
}

// serveScreen serves one viewer until it disconnects.
func serveScreen(conn io.ReadWriter) error {
	s := &screen{conn: conn, format: pixels{16, 8, 0}, shown: -1}
	if err := s.handshake(); err != nil {
		return err
	}
	for {
		if err := s.message(); err != nil {
			return err
		}
	}
}

func (s *screen) read(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(s.conn, b)
	return b, err
}

// handshake performs the handshake: version, security, and the screen's
// parameters.
func (s *screen) handshake() error {
	if _, err := io.WriteString(s.conn, "RFB 003.008\n"); err != nil {
		return err
	}
	if _, err := s.read(12); err != nil { // the client's version
		return err
	}
	if _, err := s.conn.Write([]byte{1, 1}); err != nil { // one security type: none
		return err
	}
	if _, err := s.read(1); err != nil {
		return err
	}
	if _, err := s.conn.Write([]byte{0, 0, 0, 0}); err != nil { // security result: OK
		return err
	}
	if _, err := s.read(1); err != nil { // the shared flag
		return err
	}
	const name = "basalt"
	hello := binary.BigEndian.AppendUint16(nil, screenWidth)
	hello = binary.BigEndian.AppendUint16(hello, screenHeight)
	hello = append(hello, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, s.format.red, s.format.green, s.format.blue, 0, 0, 0)
	hello = binary.BigEndian.AppendUint32(hello, uint32(len(name)))
	_, err := s.conn.Write(append(hello, name...))
	return err
}

// message reads one message and answers it.
func (s *screen) message() error {
	kind, err := s.read(1)
	if err != nil {
		return err
	}
	switch kind[0] {
	case setPixelFormat:
		b, err := s.read(19)
		if err != nil {
			return err
		}
		if f := b[3:]; f[0] != 32 || f[2] != 0 || f[3] == 0 || f[10] > 24 || f[11] > 24 || f[12] > 24 {
			return errors.New("unsupported pixel format, want 32 bits little-endian")
		}
		s.format = pixels{b[13], b[14], b[15]}
	case setEncodings:
		b, err := s.read(3)
		if err != nil {
			return err
		}
		_, err = s.read(4 * int(binary.BigEndian.Uint16(b[1:])))
		return err
	case updateRequest:
		b, err := s.read(9)
		if err != nil {
			return err
		}
		s.waiting = true
		if b[0] == 0 { // not incremental
			s.shown = -1
		}
	case keyEvent:
		b, err := s.read(7)
		if err != nil {
			return err
		}
		s.keys += int(b[0] & 1)
	case pointerEvent:
		_, err := s.read(5)
		return err
	case cutText:
		b, err := s.read(7)
		if err != nil {
			return err
		}
		n := int32(binary.BigEndian.Uint32(b[3:]))
		if n = max(n, -n); n < 0 || n > maxCutText { // negative: the extended clipboard
			return errors.New("the clipboard text is too long")
		}
		_, err = s.read(int(n))
		return err
	default:
		return errors.New("unknown message type")
	}
	return s.show()
}

// show sends the picture, if the client has requested an update and the
// picture has changed.
func (s *screen) show() error {
	if !s.waiting || s.shown == s.keys {
		return nil
	}
	s.waiting, s.shown = false, s.keys
	out := []byte{0, 0, 0, 1, 0, 0, 0, 0} // an update of one rectangle, at 0, 0
	out = binary.BigEndian.AppendUint16(out, screenWidth)
	out = binary.BigEndian.AppendUint16(out, screenHeight)
	out = binary.BigEndian.AppendUint32(out, 0) // raw
	for y := range screenHeight {
		for x := range screenWidth {
			c := bars[x*len(bars)/screenWidth]
			if y >= screenHeight-barHeight {
				c = [3]byte{}
				if x < s.keys*barStep {
					c = [3]byte{255, 128, 0}
				}
			}
			out = binary.LittleEndian.AppendUint32(out, uint32(c[0])<<s.format.red|uint32(c[1])<<s.format.green|uint32(c[2])<<s.format.blue)
		}
	}
	_, err := s.conn.Write(out)
	return err
}
