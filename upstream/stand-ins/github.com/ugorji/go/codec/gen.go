// Package codec has this file instead of its code generator. The generator is not used, but creates
// an encoding at the start of the program that causes a panic in Go 1.22 and newer.
package codec

// GenVersion is the version of the generator of the code in Kubernetes 1.6 and 1.7.
const GenVersion = 5

// genCheckVendor is an option of the generator, which other files set.
var genCheckVendor bool
