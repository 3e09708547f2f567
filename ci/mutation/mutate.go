package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"sort"
	"strings"
)

// mutator finds the mutants of a file and puts switches into its text.
type mutator struct {
	*sourcePackage
	name     string
	file     *ast.File
	text     []byte
	edits    *edits
	mutants  *mutants
	function string // the function or method that is being mutated
	// The number of statements that only log, which are left out.
	logging int
}

// mutate returns the text of a file with the switches of its mutants.
func (p *sourcePackage) mutate(name string, ms *mutants) (changed []byte, logging int) {
	m := &mutator{
		sourcePackage: p, name: name, file: p.files[name], text: p.texts[name],
		edits: newEdits(), mutants: ms,
	}
	for _, declaration := range m.file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			m.function = functionName(d)
			if d.Body != nil {
				m.body(d.Type, d.Body)
			}
		case *ast.GenDecl:
			m.function = "package " + p.types.Name()
			if d.Tok == token.VAR {
				m.variables(d)
			}
		}
	}
	return m.edits.apply(m.text), m.logging
}

func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	return types.ExprString(receiver) + "." + d.Name.Name
}

// variables mutates the initial values of variables.
func (m *mutator) variables(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		if values, ok := spec.(*ast.ValueSpec); ok && len(values.Names) == len(values.Values) {
			for i, value := range values.Values {
				if values.Names[i].Name != "_" {
					m.value(value)
				}
			}
		}
	}
}

// body mutates the body of a function. Deleted returns require a last statement that ends it.
func (m *mutator) body(signature *ast.FuncType, body *ast.BlockStmt) {
	if signature.Results != nil {
		end := m.offset(body.Rbrace)
		m.edits.wrap(end, end, ";panic(\"a return was deleted\");", "")
	}
	for i, statement := range body.List {
		_, returns := statement.(*ast.ReturnStmt)
		m.statement(statement, i+1 < len(body.List) || !returns)
	}
}

func (m *mutator) offset(pos token.Pos) int { return m.fset.Position(pos).Offset }

func (m *mutator) source(node ast.Node) string {
	return string(m.text[m.offset(node.Pos()):m.offset(node.End())])
}

// add returns the number of a new mutant of a node.
func (m *mutator) add(node ast.Node, k kind, before, after string) int {
	return m.mutants.add(mutant{
		File:     m.treePath(m.name),
		Line:     m.fset.Position(node.Pos()).Line,
		Function: m.function,
		Kind:     k,
		Change:   shorten(before) + " → " + shorten(after),
	})
}

// wrap inserts texts around a node.
func (m *mutator) wrap(node ast.Node, before, after string) {
	m.edits.wrap(m.offset(node.Pos()), m.offset(node.End()), before, after)
}

// typeOf returns the type of an expression, or nil if it has no single value.
func (m *mutator) typeOf(e ast.Expr) types.Type {
	found, ok := m.info.Types[e]
	if ident, isIdent := e.(*ast.Ident); !ok && isIdent {
		if object := m.info.Uses[ident]; object != nil {
			return object.Type()
		}
	}
	if !ok || !found.IsValue() {
		return nil
	}
	if _, several := found.Type.(*types.Tuple); several {
		return nil
	}
	return found.Type
}

func (m *mutator) isConstant(e ast.Expr) bool { return m.info.Types[e].Value != nil }

func isBool(t types.Type) bool { return basic(t)&types.IsBoolean != 0 }

// basic returns what is known of a basic type; of others, nothing.
func basic(t types.Type) types.BasicInfo {
	if t == nil {
		return 0
	}
	if b, ok := t.Underlying().(*types.Basic); ok {
		return b.Info()
	}
	return 0
}

func isNumber(t types.Type) bool { return basic(t)&(types.IsInteger|types.IsFloat) != 0 }

// typeText returns how the file writes a type; not ok if it can't.
func (m *mutator) typeText(t types.Type, at token.Pos) (text string, ok bool) {
	ok = true
	text = types.TypeString(t, func(p *types.Package) string {
		if p == m.types {
			return ""
		}
		for _, spec := range m.file.Imports {
			name, isName := m.info.Implicits[spec].(*types.PkgName)
			if spec.Name != nil {
				name, isName = m.info.Defs[spec.Name].(*types.PkgName)
			}
			if isName && name.Imported() == p {
				_, found := m.types.Scope().Innermost(at).LookupParent(name.Name(), at)
				ok = ok && found == types.Object(name)
				return name.Name()
			}
		}
		ok = false
		return ""
	})
	if b, isBasic := t.(*types.Basic); isBasic && b.Info()&types.IsUntyped != 0 {
		return types.Default(t).String(), true
	}
	return text, ok
}

// constant mutates a constant expression.
func (m *mutator) constant(e ast.Expr) {
	found := m.info.Types[e]
	t, source := found.Type, m.source(e)
	instance, ok := "", true
	if name, isTyped := m.typedName(e); !isTyped {
		var text string
		text, ok = m.typeText(t, e.Pos())
		instance = "[" + text + "]"
	} else if other := m.otherName(name, t, source); other != "" {
		id := m.add(e, apiName, source, other)
		m.wrap(e, fmt.Sprintf("mutantOther(%d, ", id), ", "+other+")")
		return
	}
	switch {
	case !ok:
	case isBool(t):
		id := m.add(e, kindConstant, source, "!"+source)
		m.wrap(e, fmt.Sprintf("(mutantAt(%d) != (", id), "))")
	case basic(t)&types.IsString != 0:
		id := m.add(e, kindText, source, source+" + \"~\"")
		m.wrap(e, fmt.Sprintf("mutantText%s(%d, ", instance, id), ")")
	case isNumber(t) && found.Value.Kind() != constant.Complex:
		step := "1"
		if t.String() == "time.Duration" {
			step = "1000000000"
		}
		unit := map[string]string{"1": "1", "1000000000": "1s"}[step]
		id := m.add(e, kindConstant, source, source+" + "+unit)
		m.add(e, kindConstant, source, source+" - "+unit)
		m.wrap(e, fmt.Sprintf("mutantConstant%s(%d, ", instance, id), ", "+step+")")
	}
}

// typedName returns the declared constant that an expression names, if it has a type.
func (m *mutator) typedName(e ast.Expr) (*types.Const, bool) {
	ident, ok := e.(*ast.Ident)
	if selector, isSelector := e.(*ast.SelectorExpr); isSelector {
		ident, ok = selector.Sel, true
	}
	if !ok {
		return nil, false
	}
	named, ok := m.info.Uses[ident].(*types.Const)
	if !ok || basic(named.Type())&types.IsUntyped != 0 {
		return nil, false
	}
	return named, true
}

// otherName returns the name of the next constant of the same named type in the same package, with
// the qualifier of a source text; or "".
func (m *mutator) otherName(name *types.Const, t types.Type, source string) string {
	if _, isNamed := t.(*types.Named); !isNamed || basic(t)&types.IsString == 0 || name.Pkg() == nil {
		return ""
	}
	scope := name.Pkg().Scope()
	var others []string
	for _, other := range scope.Names() {
		c, ok := scope.Lookup(other).(*types.Const)
		if ok && types.Identical(c.Type(), t) && (c.Exported() || name.Pkg() == m.types) &&
			c.Val().ExactString() != name.Val().ExactString() {
			others = append(others, other)
		}
	}
	if len(others) == 0 {
		return ""
	}
	next := sort.SearchStrings(others, name.Name()) % len(others)
	return strings.TrimSuffix(source, name.Name()) + others[next]
}

// isLogger reports whether a type belongs to the packages that write the log.
func isLogger(t types.Type) bool {
	if t == nil {
		return false
	}
	text := strings.TrimPrefix(t.String(), "*")
	return strings.HasPrefix(text, "github.com/go-logr/logr.") ||
		strings.HasPrefix(text, "k8s.io/klog/v2.")
}

// onlyLogs reports whether a call only writes to the log.
func (m *mutator) onlyLogs(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && isLogger(m.typeOf(selector.X))
}
