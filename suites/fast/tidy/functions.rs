//! The functions of a source and the lines of its tests, as the compiler reads them.

use std::ops::RangeInclusive;

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

/// The functions of a source and the lines of its tests.
pub(crate) struct Outline {
    /// The functions that have a body.
    pub(crate) functions: Vec<Function>,
    /// The lines of items that are compiled for tests only.
    pub(crate) tests: Vec<RangeInclusive<usize>>,
    /// True if the visited item is compiled for tests only.
    in_tests: bool,
}

/// A function with a body.
pub(crate) struct Function {
    pub(crate) name: String,
    /// The line of its signature.
    pub(crate) line: usize,
    /// The number of lines from its signature to its closing brace.
    pub(crate) lines: usize,
    /// The number of its parameters that are tuples or take a tuple apart.
    pub(crate) tuple_parameters: usize,
    /// True if it is compiled for tests only.
    pub(crate) is_test: bool,
}

impl Outline {
    /// Parses a source.
    ///
    /// # Panics
    ///
    /// If the text is not Rust.
    pub(crate) fn read(text: &str) -> Outline {
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("not Rust: {error}"));
        let mut outline = Outline { functions: Vec::new(), tests: Vec::new(), in_tests: false };
        outline.visit_file(&file);
        outline
    }

    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.tests.iter().any(|lines| lines.contains(&line))
    }

    /// Visits an item, and remembers its lines if it is for tests.
    fn item(
        &mut self,
        item: &impl syn::spanned::Spanned,
        attributes: &[syn::Attribute],
        visit: impl FnOnce(&mut Outline),
    ) {
        let outer = self.in_tests;
        if is_for_tests(attributes) {
            self.tests.push(item.span().start().line..=item.span().end().line);
            self.in_tests = true;
        }
        visit(self);
        self.in_tests = outer;
    }

    fn add(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let line = signature.span().start().line;
        let tuple_parameters = signature.inputs.iter().filter(|input| is_tuple(input)).count();
        self.functions.push(Function {
            name: signature.ident.to_string(),
            line,
            lines: body.span().end().line - line + 1,
            tuple_parameters,
            is_test: self.in_tests,
        });
    }
}

/// Returns true for `(a, b): …` and for `name: (A, B)`, behind a reference too. The unit `()` is
/// not a tuple here.
fn is_tuple(input: &syn::FnArg) -> bool {
    let syn::FnArg::Typed(typed) = input else { return false };
    let mut ty = &*typed.ty;
    while let syn::Type::Reference(reference) = ty {
        ty = &reference.elem;
    }
    let is_tuple_type = matches!(ty, syn::Type::Tuple(tuple) if !tuple.elems.is_empty());
    let is_tuple_pattern = matches!(&*typed.pat, syn::Pat::Tuple(tuple) if !tuple.elems.is_empty());
    is_tuple_type || is_tuple_pattern
}

impl<'ast> Visit<'ast> for Outline {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.item(item, &item.attrs, |outline| visit::visit_item_mod(outline, item));
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.item(item, &item.attrs, |outline| visit::visit_item_impl(outline, item));
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.item(item, &item.attrs, |_| ());
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.item(item, &item.attrs, |_| ());
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.item(item, &item.attrs, |outline| visit::visit_item_const(outline, item));
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.item(item, &item.attrs, |outline| {
            outline.add(&item.sig, &item.block);
            visit::visit_item_fn(outline, item);
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.item(item, &item.attrs, |outline| {
            outline.add(&item.sig, &item.block);
            visit::visit_impl_item_fn(outline, item);
        });
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.add(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

/// `#[test]` and `#[cfg(test)]`.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg_test = attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"));
        is_cfg_test || attribute.path().is_ident("test")
    })
}
