package main

// switchesFile is the name of the file that is added to each mutated package.
const switchesFile = "zz_mutants.go"

// selected is the environment variable that selects a mutant by its number. Without it, the host
// behaves as upstream.
const selected = "MUTANT"

// recorded is the environment variable that names a file, to which the host appends the number of
// each mutant whose code it runs.
const recorded = "MUTANTS_REACHED"

// switches is the source of the file with which the mutated code selects a mutant. The package name
// precedes it.
const switches = `
import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"sync"
)

var mutantSelected, _ = strconv.Atoi(os.Getenv("` + selected + `"))

var mutantFile = func() *os.File {
	name := os.Getenv("` + recorded + `")
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		panic(err)
	}
	return file
}()

var mutantsReached sync.Map

func mutantReached(id int) {
	if _, before := mutantsReached.LoadOrStore(id, true); !before {
		fmt.Fprintln(mutantFile, id)
	}
}

func mutantAt(id int) bool {
	if mutantFile != nil {
		mutantReached(id)
	}
	return id == mutantSelected
}

func mutantForced[T ~bool](id int, value T) T {
	switch {
	case mutantAt(id):
		return true
	case mutantAt(id + 1):
		return false
	}
	return value
}

func mutantZero[T any](id int, value T) T {
	if mutantAt(id) {
		var zero T
		return zero
	}
	return value
}

func mutantClear[T any](id int, value *T) {
	if mutantAt(id) {
		var zero T
		*value = zero
	}
}

func mutantOther[T any](id int, value, other T) T {
	if mutantAt(id) {
		return other
	}
	return value
}

func mutantText[T ~string](id int, value T) T {
	if mutantAt(id) {
		return value + "~"
	}
	return value
}

type mutantNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

func mutantConstant[T mutantNumber](id int, value, step T) T {
	switch {
	case mutantAt(id):
		return value + step
	case mutantAt(id + 1):
		return value - step
	}
	return value
}

func mutantRelation[T cmp.Ordered](id int, operator string, a, b T) bool {
	first, second := mutantAt(id), mutantAt(id+1)
	switch operator {
	case "<":
		return first && a <= b || second && a > b || !first && !second && a < b
	case "<=":
		return first && a < b || second && a > b || !first && !second && a <= b
	case ">":
		return first && a >= b || second && a < b || !first && !second && a > b
	default:
		return first && a > b || second && a < b || !first && !second && a >= b
	}
}

func mutantArithmetic[T mutantNumber](id int, operator byte, a, b T) T {
	if mutantAt(id) {
		switch operator {
		case '+':
			return a - b
		case '-':
			return a + b
		case '*':
			return a / b
		default:
			return a * b
		}
	}
	switch operator {
	case '+':
		return a + b
	case '-':
		return a - b
	case '*':
		return a * b
	default:
		return a / b
	}
}

func mutantAnd(id int, a bool, b func() bool) bool {
	if mutantAt(id) {
		return a || b()
	}
	return a && b()
}

func mutantOr(id int, a bool, b func() bool) bool {
	if mutantAt(id) {
		return a && b()
	}
	return a || b()
}

`
