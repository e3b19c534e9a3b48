package testevo.tracer;

import java.lang.instrument.ClassFileTransformer;
import java.security.ProtectionDomain;
import java.util.Set;
import java.util.TreeSet;
import org.jacoco.cli.internal.asm.ClassReader;
import org.jacoco.cli.internal.asm.ClassVisitor;
import org.jacoco.cli.internal.asm.ClassWriter;
import org.jacoco.cli.internal.asm.Label;
import org.jacoco.cli.internal.asm.MethodVisitor;
import org.jacoco.cli.internal.asm.Opcodes;

/** Puts a call of {@link Probe#enter} before the first instruction of every method of the project's own classes. */
final class Tracing implements ClassFileTransformer {
    private static final int API = Opcodes.ASM9;

    private final Directories directories;
    private final Entries entries;

    Tracing(Directories directories, Entries entries) {
        this.directories = directories;
        this.entries = entries;
    }

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
        // Classes of the JVM itself, and classes without a name of their own.
        if (loader == null || name == null || redefined != null) {
            return null;
        }
        boolean isTest = directories.isTest(domain);
        if (!isTest && !directories.isMain(domain)) {
            return null;
        }
        try {
            if (isTest) {
                addTest(name, new ClassReader(bytes));
                return null;
            }
            ClassReader reader = new ClassReader(bytes);
            ClassWriter writer = new ClassWriter(reader, 0);
            TracedClass traced = new TracedClass(writer, name);
            reader.accept(traced, 0);
            return traced.source == null ? null : writer.toByteArray();
        } catch (Throwable unknown) {
            // A class file of a later release, or one that is no sound class file: it stays as it is.
            entries.addUntraced(name);
            return null;
        }
    }

    private static void addTest(String name, ClassReader reader) {
        Set<String> parents = new TreeSet<String>();
        for (String parent : reader.getInterfaces()) {
            parents.add(parent.replace('/', '.'));
        }
        if (reader.getSuperName() != null) {
            parents.add(reader.getSuperName().replace('/', '.'));
        }
        Probe.callers().addTest(name.replace('/', '.'), parents);
    }

    /** A class on its way through; one that names no source stays as it is. */
    private final class TracedClass extends ClassVisitor {
        private final String name;
        private String source;
        private boolean isEnum;

        TracedClass(ClassVisitor next, String name) {
            super(API, next);
            this.name = name;
        }

        @Override
        public void visit(int version, int access, String own, String signature, String base, String[] interfaces) {
            isEnum = (access & Opcodes.ACC_ENUM) != 0;
            super.visit(version, access, own, signature, base, interfaces);
        }

        @Override
        public void visitSource(String file, String debug) {
            if (file != null) {
                source = name.substring(0, name.lastIndexOf('/') + 1) + file;
            }
            super.visitSource(file, debug);
        }

        @Override
        public MethodVisitor visitMethod(int access, String method, String descriptor, String signature, String[] thrown) {
            MethodVisitor next = super.visitMethod(access, method, descriptor, signature, thrown);
            if (next == null || source == null) {
                return next;
            }
            if ((access & Opcodes.ACC_BRIDGE) != 0) {
                return new Bridge(next, name.replace('/', '.'), method);
            }
            boolean isCompilers = (access & Opcodes.ACC_SYNTHETIC) != 0 || (isEnum && isOfEveryEnum(method, descriptor));
            return isCompilers ? next : new TracedMethod(next, new Entries.Entry(name, source, method, descriptor));
        }

        private boolean isOfEveryEnum(String method, String descriptor) {
            return (method.equals("values") && descriptor.equals("()[L" + name + ";"))
                    || (method.equals("valueOf") && descriptor.equals("(Ljava/lang/String;)L" + name + ";"));
        }
    }

    /** A method that calls another one of its name, whose caller is its own. */
    private static final class Bridge extends MethodVisitor {
        private final String className;
        private final String method;

        Bridge(MethodVisitor next, String className, String method) {
            super(API, next);
            this.className = className;
            this.method = method;
        }

        @Override
        public void visitLineNumber(int line, Label start) {
            Probe.callers().addBridge(className, method, line);
            super.visitLineNumber(line, start);
        }
    }

    /** A method on its way through. */
    private final class TracedMethod extends MethodVisitor {
        private final Entries.Entry entry;

        TracedMethod(MethodVisitor next, Entries.Entry entry) {
            super(API, next);
            this.entry = entry;
        }

        @Override
        public void visitCode() {
            super.visitCode();
            int number = entries.add(entry);
            if (number >= 0) {
                visitLdcInsn(number);
                visitMethodInsn(Opcodes.INVOKESTATIC, "testevo/tracer/Probe", "enter", "(I)V", false);
            }
        }

        @Override
        public void visitLineNumber(int line, Label start) {
            entry.lines.add(line);
            super.visitLineNumber(line, start);
        }

        @Override
        public void visitMaxs(int stack, int locals) {
            // The call needs one slot of the stack, which is empty where it stands.
            super.visitMaxs(Math.max(stack, 1), locals);
        }
    }
}
