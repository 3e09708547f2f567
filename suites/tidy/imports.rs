//! The modules of the crate and the paths by which they use each other, as the compiler reads them:
//! nested `use`, `self`, `super::super`, re-exports, and paths in expressions and macros.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

/// A path of a module or an item, from the root of the crate.
pub(crate) type ModulePath = Vec<String>;

/// A source file, which is a module.
pub(crate) struct Source {
    pub(crate) module: ModulePath,
    pub(crate) path: PathBuf,
    /// Its syntax tree, without tests.
    pub(crate) file: syn::File,
    /// The paths that it uses.
    pub(crate) uses: Vec<Use>,
    /// The names that `use` brings into the module, re-exports among them.
    names: BTreeMap<String, ModulePath>,
    /// The modules of `use …::*`.
    globs: Vec<ModulePath>,
    /// The names of its own items.
    items: BTreeSet<String>,
}

/// A path that a source uses.
pub(crate) struct Use {
    pub(crate) target: ModulePath,
    pub(crate) line: usize,
    /// It only passes the name on: `pub use`.
    pub(crate) is_re_export: bool,
}

/// The sources of a crate.
pub(crate) struct Sources(pub(crate) Vec<Source>);

impl Sources {
    /// Reads all sources below a folder, except those that are compiled for tests only.
    pub(crate) fn read(root: &Path) -> Sources {
        let mut sources = Vec::new();
        read_module(root, Vec::new(), &root.join("lib.rs"), &mut sources);
        let mut sources = Sources(sources);
        sources.resolve_names();
        sources
    }

    fn get(&self, module: &[String]) -> Option<&Source> {
        self.0.iter().find(|source| source.module == module)
    }

    /// The module to which a path leads, re-exports followed.
    pub(crate) fn module_of(&self, path: &[String]) -> &Source {
        self.follow(path, 0)
    }

    fn follow(&self, path: &[String], depth: usize) -> &Source {
        let prefixes = (0..=path.len()).rev().map(|end| path.split_at(end));
        let (source, rest) = prefixes
            .filter_map(|(module, rest)| Some((self.get(module)?, rest)))
            .next()
            .expect("the root is a module");
        let [name, rest @ ..] = rest else { return source };
        if source.items.contains(name) || depth > 8 {
            return source;
        }
        if let Some(target) = source.names.get(name) {
            return self.follow(&[target, rest].concat(), depth + 1);
        }
        let provides = |module: &&ModulePath| {
            let source = self.get(module);
            source.is_some_and(|it| it.items.contains(name) || it.names.contains_key(name))
        };
        match source.globs.iter().find(provides) {
            Some(module) => self.follow(&[module, std::slice::from_ref(name)].concat(), depth + 1),
            None => source,
        }
    }

    /// The first name of a relative path may be a child module, or nothing of this crate.
    fn resolve_names(&mut self) {
        let modules: BTreeSet<ModulePath> =
            self.0.iter().map(|source| source.module.clone()).collect();
        for source in &mut self.0 {
            let mut collector = Collector {
                module: source.module.clone(),
                modules: &modules,
                uses: Vec::new(),
                names: BTreeMap::new(),
                globs: Vec::new(),
            };
            collector.visit_file(&source.file);
            source.uses = collector.uses;
            source.names = collector.names;
            source.globs = collector.globs;
        }
    }
}

/// Reads a module and its children.
fn read_module(root: &Path, module: ModulePath, path: &Path, sources: &mut Vec<Source>) {
    let text = std::fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{} can't be read: {error}", path.display()));
    let mut file = syn::parse_file(&text)
        .unwrap_or_else(|error| panic!("{} can't be parsed: {error}", path.display()));
    file.items.retain(|item| !is_for_tests(attributes(item)));
    let folder = module.iter().fold(root.to_owned(), |folder, name| folder.join(name));
    for item in &file.items {
        let syn::Item::Mod(child) = item else { continue };
        if child.content.is_some() {
            continue;
        }
        let name = child.ident.to_string();
        let paths = [folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")];
        let found = paths.into_iter().find(|path| path.is_file());
        let found = found.unwrap_or_else(|| panic!("{}: no file of {name}", path.display()));
        read_module(root, [module.clone(), vec![name]].concat(), &found, sources);
    }
    let items = file.items.iter().filter_map(name_of).collect();
    let (path, uses, names, globs) = (path.to_owned(), Vec::new(), BTreeMap::new(), Vec::new());
    sources.push(Source { module, path, file, uses, names, globs, items });
}

/// `#[test]` and `#[cfg(test)]`.
pub(crate) fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg_test = attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"));
        is_cfg_test || attribute.path().is_ident("test")
    })
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name_of(item: &syn::Item) -> Option<String> {
    let name = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Collects the paths of one source.
struct Collector<'a> {
    module: ModulePath,
    modules: &'a BTreeSet<ModulePath>,
    uses: Vec<Use>,
    names: BTreeMap<String, ModulePath>,
    globs: Vec<ModulePath>,
}

impl Collector<'_> {
    /// A path from the root of the crate, if it is one of this crate.
    fn absolute(&self, path: &[String]) -> Option<ModulePath> {
        let mut module = self.module.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                module.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while let Some((first, after)) = rest.split_first()
                    && first == "super"
                {
                    module.pop();
                    rest = after;
                }
            }
            child => {
                let child = [module.clone(), vec![child.to_owned()]].concat();
                if !self.modules.contains(&child) {
                    return None;
                }
            }
        }
        module.extend_from_slice(rest);
        Some(module)
    }

    fn add(&mut self, path: &[String], line: usize, is_re_export: bool) {
        if let Some(target) = self.absolute(path).filter(|_| path.len() > 1) {
            self.uses.push(Use { target, line, is_re_export });
        }
    }

    /// Each path of a tree of imports.
    fn tree(&mut self, tree: &syn::UseTree, before: &[String], is_re_export: bool) {
        let line = tree.span().start().line;
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.tree(&path.tree, &with(&path.ident), is_re_export),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.tree(tree, before, is_re_export));
            }
            syn::UseTree::Name(name) if name.ident == "self" => {
                self.name(before, before.last().cloned(), line, is_re_export);
            }
            syn::UseTree::Name(name) => {
                self.name(&with(&name.ident), Some(name.ident.to_string()), line, is_re_export);
            }
            syn::UseTree::Rename(name) => {
                self.name(&with(&name.ident), Some(name.rename.to_string()), line, is_re_export);
            }
            syn::UseTree::Glob(_) => {
                self.globs.extend(self.absolute(before));
                self.add(before, line, is_re_export);
            }
        }
    }

    fn name(&mut self, path: &[String], name: Option<String>, line: usize, is_re_export: bool) {
        if let (Some(name), Some(target)) = (name, self.absolute(path)) {
            self.names.insert(name, target);
        }
        self.add(path, line, is_re_export);
    }

    /// Paths in the arguments of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.add(&path, line, false);
                        path.clear();
                        line = name.span().start().line;
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => self.tokens(group.stream()),
                _ => colons = 0,
            }
        }
        self.add(&path, line, false);
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if item.content.is_some() && !is_for_tests(&item.attrs) {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let is_re_export = !matches!(item.vis, syn::Visibility::Inherited);
        self.tree(&item.tree, &[], is_re_export);
    }

    // A visibility names a module, but uses nothing of it.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1 {
            self.add(&names, path.span().start().line, false);
        }
        visit::visit_path(self, path);
    }

    // The paths of a macro are those of its callers.
    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if !item.mac.path.is_ident("macro_rules") {
            visit::visit_item_macro(self, item);
        }
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.tokens(item.tokens.clone());
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }
}
