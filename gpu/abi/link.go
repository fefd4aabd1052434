package abi

// LinkMagic starts an image with several objects to be linked: what
// cuLinkComplete returns. Such an image is used like any other, so a worker of
// version 1.1 or older refuses it as invalid PTX. "BLNK".
const LinkMagic uint32 = 0x4b4e4c42

// The layout of a link image. Every object begins at a multiple of 8 with its
// header; the name and the image follow. Bytes up to the next object are zero.
const (
	LinkVersion    = 1
	LinkHeadSize   = 32 // u32 magic, u32 version, u64 size of all, u32 objects, u32 optimization level, u32 registers, u32 zero
	LinkObjectSize = 16 // u32 type, u32 bytes of name, u64 bytes of image
	MaxLinkObjects = 1024
	MaxLinkName    = 256
	LinkLinked     = 1 << 16 // a type that is not CUDA's, for the first object: LinkImage.Linked
)
