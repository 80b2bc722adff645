//! What a function may return instead of what it should, by the type that it is said to return.

use syn::{GenericArgument, PathArguments, ReturnType, Type};

/// Expressions of the type, wrong ones for most calls. None for types of which nothing is known to make.
pub fn of(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".to_owned()],
        ReturnType::Type(_, kind) => of_type(kind),
    }
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

fn of_type(kind: &Type) -> Vec<String> {
    match kind {
        Type::Tuple(tuple) if tuple.elems.is_empty() => texts(&["()"]),
        Type::Tuple(tuple) => {
            let elements: Option<Vec<String>> =
                tuple.elems.iter().map(|element| of_type(element).into_iter().next()).collect();
            elements.map(|elements| format!("({})", elements.join(", "))).into_iter().collect()
        }
        Type::Path(path) => of_path(path),
        Type::Reference(reference) if reference.mutability.is_none() => match &*reference.elem {
            Type::Path(path) if path.path.is_ident("str") => texts(&["\"\""]),
            Type::Slice(_) => texts(&["&[]"]),
            of => {
                of_type(of).first().map(|value| format!("Box::leak(Box::new({value}))")).into_iter().collect()
            }
        },
        Type::Paren(paren) => of_type(&paren.elem),
        Type::Array(_) => texts(&["Default::default()"]),
        _ => Vec::new(),
    }
}

fn of_path(path: &syn::TypePath) -> Vec<String> {
    let Some(last) = path.path.segments.last() else { return Vec::new() };
    let inner = match &last.arguments {
        PathArguments::AngleBracketed(arguments) => {
            arguments.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(of) => Some(of_type(of)),
                _ => None,
            })
        }
        _ => None,
    };
    let wrapped =
        |name: &str| inner.iter().flatten().map(|value| format!("{name}({value})")).collect::<Vec<_>>();
    match last.ident.to_string().as_str() {
        "bool" => texts(&["true", "false"]),
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => texts(&["0", "1"]),
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => texts(&["0", "1", "-1"]),
        "f32" | "f64" => texts(&["0.0", "1.0", "-1.0"]),
        "String" => texts(&["String::new()", "\"xyzzy\".to_owned()"]),
        "Option" => ["None".to_owned()].into_iter().chain(wrapped("Some")).collect(),
        "Result" => wrapped("Ok"),
        "Box" => wrapped("Box::new"),
        "Vec" => {
            let one = inner.iter().flatten().take(1).map(|value| format!("vec![{value}]"));
            ["Vec::new()".to_owned()].into_iter().chain(one).collect()
        }
        _ => texts(&["Default::default()"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        of(&syn::parse_str(text).expect("a type"))
    }

    #[test]
    fn values_are_of_the_type() {
        assert_eq!(values("-> Option<f64>"), ["None", "Some(0.0)", "Some(1.0)", "Some(-1.0)"]);
        assert_eq!(values("-> Result<(Joules, usize)>"), ["Ok((Default::default(), 0))"]);
        assert_eq!(values("-> &[f64]"), ["&[]"]);
        assert_eq!(values("-> impl Iterator<Item = u8>"), [""; 0]);
        assert_eq!(values(""), ["()"]);
    }
}
