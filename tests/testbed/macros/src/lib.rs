//! `#[test]` for programs of tests whose harness is the testbed's, which can say of a test that it was skipped.

use proc_macro::TokenStream;
use quote::quote;
use syn::{Expr, ItemFn, Lit, Meta, parse_macro_input};

/// A test of a program that calls `eprof_testbed::harness!()`. As with the compiler's own attribute of this name,
/// `#[ignore = "why"]` beside it leaves the test to those who ask for it.
#[proc_macro_attribute]
pub fn test(_: TokenStream, item: TokenStream) -> TokenStream {
    let mut function = parse_macro_input!(item as ItemFn);
    let mut ignored = quote! { ::core::option::Option::None };
    let mut strangers = Vec::new();
    function.attrs.retain(|attribute| {
        if attribute.path().is_ident("should_panic") {
            strangers
                .push(syn::Error::new_spanned(attribute, "this harness knows no test that should panic"));
        }
        if !attribute.path().is_ident("ignore") {
            return true;
        }
        let reason = match &attribute.meta {
            Meta::NameValue(pair) => match &pair.value {
                Expr::Lit(value) => match &value.lit {
                    Lit::Str(reason) => reason.value(),
                    _ => String::new(),
                },
                _ => String::new(),
            },
            _ => String::new(),
        };
        ignored = quote! { ::core::option::Option::Some(#reason) };
        false
    });
    let errors = strangers.iter().map(syn::Error::to_compile_error);
    let name = &function.sig.ident;
    quote! {
        #(#errors)*
        #function
        ::eprof_testbed::inventory::submit! {
            ::eprof_testbed::harness::Test {
                module: ::core::module_path!(),
                name: ::core::stringify!(#name),
                run: #name,
                ignored: #ignored,
            }
        }
    }
    .into()
}
